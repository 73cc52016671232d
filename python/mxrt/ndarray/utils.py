load=load_frombuffer=save=None
